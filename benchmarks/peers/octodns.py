"""octoDNS, the closest sibling: YAML files validated, compared and planned. From one folder of zones to another."""

from __future__ import annotations

from pathlib import Path

from benchmarks.fleets import pools
from benchmarks.process import clean_environment, peer_python, run
from benchmarks.series import Sample

_CONFIG = """\
providers:
  source:
    class: octodns.provider.yaml.YamlProvider
    directory: ./source
    default_ttl: 3600
  target:
    class: octodns.provider.yaml.YamlProvider
    directory: ./target
    default_ttl: 3600
zones:
  bench.example.:
    sources: [source]
    targets: [target]
"""


class OctoDns:
    """A zone of `count` records that is the same at source and target, so that there is nothing to do."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.env = clean_environment(folder / "home")
        (folder / "config.yaml").write_text(_CONFIG)
        for side in ("source", "target"):
            (folder / side).mkdir()
            (folder / side / "bench.example.yaml").write_text("".join(_records(count)))

    def plan(self) -> Sample:
        """Compare, and find nothing to do."""
        argv = [str(Path(peer_python()).with_name("octodns-sync")), "--config-file", "config.yaml"]
        return run(argv, cwd=self.folder, env=self.env, says="No changes were planned")


def _records(count: int) -> list[str]:
    out = ["---\n"]
    for number, pool in enumerate(pools(count)):
        first, second = f"10.{number >> 8 & 255}.{number & 255}.1", f"10.{number >> 8 & 255}.{number & 255}.2"
        out.append(f"{pool.name}:\n  ttl: {300 + pool.gpus}\n  type: A\n  values:\n  - {first}\n  - {second}\n")
    return out
