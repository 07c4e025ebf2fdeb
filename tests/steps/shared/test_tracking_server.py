"""W&B over a connection: live runs, uploads of what was written offline, a server that hangs."""

import gzip
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tracked_runs import CONFIG, KEY, RUN, folders, log

from steps.shared import tracking, tracking_client

pytestmark = pytest.mark.usefixtures("own_wandb")
ROOT = Path(__file__).resolve().parents[3]


class _Server(BaseHTTPRequestHandler):
    """As much of a W&B server as an upload needs; `seen` holds (operation or path, body)."""

    seen: list[tuple[str, Any]] = []

    def do_POST(self) -> None:
        """Answer GraphQL and file-stream requests."""
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        content = json.loads(body) if body.startswith(b"{") else {}
        query, data = content.get("query", ""), {}
        self.seen.append((content.get("operationName") or self.path, content))
        if "upsertBucket" in query:
            project = {"id": "P", "name": "retable", "entity": {"id": "E", "name": "me"}}
            bucket = {"id": "B", "name": content["variables"]["name"], "project": project}
            data = {"upsertBucket": {"bucket": bucket, "inserted": True}}
        elif "viewer" in query:
            data = {"viewer": {"id": "V", "entity": "me", "username": "me", "flags": "{}"}}
        elif "createRunFiles" in query:
            data = {"createRunFiles": {"runID": "B", "uploadHeaders": [], "files": []}}
        answer = json.dumps({"data": data}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, Any]]]:
    """Serve a small W&B and return what it has seen."""
    monkeypatch.setattr(_Server, "seen", [])
    with ThreadingHTTPServer(("127.0.0.1", 0), _Server) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{running.server_port}")
        monkeypatch.setenv("WANDB_API_KEY", KEY)
        yield _Server.seen
        running.shutdown()


def upserted(seen: list[tuple[str, Any]]) -> set[str]:
    """Return the ids of the runs that the server was told about."""
    return {body["variables"]["name"] for name, body in seen if name == "UpsertBucket"}


def uploaded_history(seen: list[tuple[str, Any]]) -> list[tuple[int, float]]:
    """Return (step, loss) of the history lines that the server received."""
    parts = [body["files"].get("wandb-history.jsonl") for _, body in seen if "files" in body]
    lines = [json.loads(line) for part in parts if part for line in part["content"]]
    return [(line["_step"], line["loss"]) for line in lines]


def test_hanging_server_is_cut_off_once_and_its_process_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tracking_client, "DEADLINE_SECONDS", 3.0)
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        start = time.monotonic()
        with tracking.open_run(**RUN, phase="train", config=CONFIG) as live:
            worker = tracking._worker
            for step in range(20_000):  # more than a pipe holds: logging must not block
                live.log(step, {"loss": 1.0})
        log()
        assert time.monotonic() - start < 5
    assert worker is not None and worker.process.returncode is not None
    assert capfd.readouterr().err.count("tracking:") == 1
    assert folders(tmp_path) == []


def test_live_run_resumes_by_id_and_uploads_as_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: list[tuple[str, Any]]
) -> None:
    monkeypatch.setenv("WANDB_MODE", "online")
    with tracking.open_run(**RUN, phase="train", config=CONFIG) as live:
        live.log(5, {"loss": 2.0})
        live.log(6, {"loss": 1.0})
    tracking._close()
    assert [name for name, _ in server].count("RunResumeStatus") == 1
    assert upserted(server) == {tracking.run_id(**RUN, config=CONFIG)}
    assert uploaded_history(server) == [(5, 2.0), (6, 1.0)]
    assert folders(tmp_path) == []


def test_sync_uploads_the_newest_of_each_id_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    server: list[tuple[str, Any]],
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    (tmp_path / "history.csv").write_text("step,loss\n1,0.5\n")
    log(history=tmp_path / "history.csv")
    tracking._close()
    (name,) = folders(tmp_path)
    older = tmp_path / "wandb" / f"offline-run-20000101_000000-{name.rsplit('-', 1)[1]}"
    shutil.copytree(tmp_path / "wandb" / name, older)
    command = [sys.executable, "-m", "steps.shared.tracking", "sync", "--dir"]
    command.append(str(tmp_path / "wandb"))

    def sync() -> tuple[int, str, str]:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    monkeypatch.delenv("WANDB_API_KEY")
    code, _, error = sync()
    assert code == 1 and error.splitlines()[0].startswith("error: no W&B key")
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    assert sync()[:2] == (0, f"{tmp_path}/wandb: 1 uploaded, 0 already there\n")
    assert uploaded_history(server) == [(1, 0.5)]
    assert not list(older.glob("*.synced"))
    server.clear()
    assert sync()[:2] == (0, f"{tmp_path}/wandb: 0 uploaded, 1 already there\n")
    assert server == []


def test_sync_without_runs_needs_no_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tracking.sync(tmp_path / "wandb")
    assert capsys.readouterr().out.endswith("0 uploaded, 0 already there\n")
