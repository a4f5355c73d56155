"""A loaded fleet as bytes and back, so that files which have not changed need not be read as YAML again.

What is kept is a cache: it holds for the same files, the same machines and the same version of this program, and whatever
is wrong with it means that the files are loaded. Only a fleet without errors is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fleetctl.canonical import Digest, digest_of
from fleetctl.config.loaded import Inventory, KnownPools, LoadResult
from fleetctl.diagnostics import REGISTRY, Diagnostic, Span
from fleetctl.model.bodies import BODY_TYPES
from fleetctl.model.bodytext import BodyText
from fleetctl.model.declared import Acceptance, Declared, Fleet, IgnoredDrift
from fleetctl.model.ids import FleetName, TenantId

FORMAT: Final = 1
_ACCEPT = ("danger", "reason", "until")
_IGNORE = ("object", "field", "owner", "reason", "until")


def remember(result: LoadResult, fleet: Fleet, known: KnownPools) -> bytes:
    """What `recall` reads. `fleet` is the result's; `known` is what the lints were told of machines."""
    files = {name: place for place, name in enumerate(result.files)}
    kept = {
        "format": FORMAT,
        "fleet": fleet.name,
        "tenant": fleet.tenant,
        "known": _digest_of(known),
        "objects": [[*_object(item), *_place(item.span, files)] for item in fleet.objects],
        "accept": [[getattr(item, name) for name in _ACCEPT] + _place(item.span, files) for item in fleet.accept],
        "ignore": [[getattr(item, name) for name in _IGNORE] + _place(item.span, files) for item in fleet.ignore_drift],
        "release": list(fleet.release),
        "diagnostics": [
            [item.code.name, item.detail, item.severity, item.subject, *_place(item.span, files)]
            for item in result.diagnostics
        ],
        "externals": result.externals,
    }
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def recall(kept: bytes, files: Mapping[str, Digest], inventory: Inventory) -> LoadResult | None:
    """What was remembered of `files`; None where it does not hold for what is known of machines now, or is not readable."""
    try:
        data: Any = json.loads(kept.decode("utf-8", "surrogatepass"))
        fleet, known = FleetName(data["fleet"]), data["known"]
        if data["format"] != FORMAT or known != _digest_of(inventory(fleet)):
            return None
        return _result(data, files)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError):
        return None


def _result(data: Any, files: Mapping[str, Digest]) -> LoadResult:
    names = list(files)
    if data["diagnostics"]:
        import fleetctl.config.load  # noqa: F401 - declares the codes that are named here
    return LoadResult(
        fleet=Fleet(
            name=FleetName(data["fleet"]),
            tenant=TenantId(data["tenant"]),
            objects=tuple(_declared(data["objects"], names)),
            accept=tuple(
                Acceptance(**dict(zip(_ACCEPT, row, strict=False)), span=_span(row, names)) for row in data["accept"]
            ),
            ignore_drift=tuple(
                IgnoredDrift(**dict(zip(_IGNORE, row, strict=False)), span=_span(row, names)) for row in data["ignore"]
            ),
            release=tuple(data["release"]),
        ),
        diagnostics=tuple(
            Diagnostic(code=REGISTRY[row[0]], detail=row[1], severity=row[2], subject=row[3], span=_span(row, names))
            for row in data["diagnostics"]
        ),
        files=files,
        externals=tuple((section, text) for section, text in data["externals"]),
    )


def _object(item: Declared) -> list[Any]:
    text = item.text
    return [
        item.kind,
        item.key,
        item.name,
        item.protect,
        item.explicit_only,
        item.adopt,
        text.holed,
        dict(text.references),
    ]


def _declared(rows: Sequence[Any], names: Sequence[str]) -> Iterator[Declared]:
    for kind, key, name, protect, explicit_only, adopt, holed, references, file, line, column in rows:
        known = BODY_TYPES[kind].REFERENCES  # KeyError, TypeError: no row of ours
        texts = (key, name, holed, *references.values())
        flags = (protect, explicit_only)
        if set(map(type, texts)) != {str} or set(map(type, flags)) != {bool} or references.keys() - known.keys():
            raise ValueError("no row of ours")
        yield Declared(
            kind=kind,
            key=key,
            name=name,
            body=BodyText(holed, references),
            protect=protect,
            explicit_only=explicit_only,
            adopt=adopt,
            span=None if file is None else Span(names[file], line, column),
        )


def _place(span: Span | None, files: Mapping[str, int]) -> list[int | None]:
    return [None, None, None] if span is None else [files[span.file], span.line, span.column]


def _span(row: Sequence[Any], names: Sequence[str]) -> Span | None:
    file, line, column = row[-3:]
    return None if file is None else Span(names[file], line, column)


def _digest_of(known: KnownPools) -> Digest:
    return digest_of(
        {key: {"resources": item.resources, "families": sorted(item.families)} for key, item in known.items()}
    )
