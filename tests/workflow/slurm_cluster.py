"""A Slurm cluster of one node, this machine: munge, a controller and a node, started and stopped.

Needs root and Debian's slurm-wlm and munge. The configuration is in /etc/slurm, since jobs keep no
variable that begins with SLURM; a machine that already has one is left alone.
"""

import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CONFIG = Path("/etc/slurm/slurm.conf")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo")
CPUS = 8  # more jobs at once than cores: at scale smoke most of a job is waiting
MUNGE_FILES = {
    **{"key-file": "key", "socket": "socket", "pid-file": "pid"},
    **{"log-file": "log", "seed-file": "seed"},
}
TEMPLATE = """\
ClusterName=test
SlurmctldHost={host}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName={host} CPUs={cpus} RealMemory=64000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> list[str]:
    """Return the programs of a cluster that this machine lacks."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


@contextmanager
def cluster(folder: Path) -> Iterator[None]:
    """Run a cluster whose files are in `folder`; stop it and remove its configuration after."""
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o600)
    host = socket.gethostname().split(".")[0]
    CONFIG.write_text(TEMPLATE.format(host=host, folder=folder, cpus=CPUS))
    try:
        munge = [f"--{name}={folder}/munge.{end}" for name, end in MUNGE_FILES.items()]
        subprocess.run(["munged", "--force", *munge], check=True)
        subprocess.run(["slurmctld"], check=True)
        subprocess.run(["slurmd"], check=True)
        _wait_until_idle()
        yield
    finally:
        for name in ("slurmd", "slurmctld", "munge"):
            pid = folder / f"{name}.pid"
            if pid.exists():
                subprocess.run(["kill", pid.read_text().strip()])
        CONFIG.unlink()


def _wait_until_idle() -> None:
    """Wait until the node takes jobs."""
    for _ in range(60):
        state = subprocess.run(["sinfo", "-h", "-o", "%T"], capture_output=True, text=True)
        if state.stdout.strip() == "idle":
            return
        time.sleep(1)
    raise AssertionError(f"the node takes no jobs after 60 s: {state.stdout} {state.stderr}")
