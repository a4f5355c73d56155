"""Arguments that are small documents: quotas, policies, names with values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from fleetctl.canonical import Json
from fleetctl.cli.files import read_bytes
from fleetctl.diagnostics import code
from fleetctl.errors import BadInput, Usage
from fleetctl.units import UnitError, parse_count

BAD_QUOTA = code(
    "quota-argument",
    "A quota is not given as RESOURCE=COUNT",
    trigger="`--quota` or an argument of `quotas set` without `=`, or with something that is no count behind it",
    exit_code=64,
)
BAD_POLICY_ARGUMENT = code(
    "policy-argument",
    "A policy is not given as a JSON object",
    trigger="`--policy` with something else than a JSON object, or the name of a file that holds one behind `@`",
)
_MAX_POLICY = 1024 * 1024


def quota_of(arguments: Iterable[str]) -> dict[str, int]:
    """`gpu=32` arguments. Raises Usage."""
    out: dict[str, int] = {}
    for text in arguments:
        resource, equals, count = text.partition("=")
        if not equals or not resource or resource in out:
            raise Usage(BAD_QUOTA.at(f"`{text[:80]}`: write each resource once as RESOURCE=COUNT, such as gpu=32"))
        try:
            out[resource] = parse_count(count)
        except UnitError as error:
            raise Usage(BAD_QUOTA.at(f"`{text[:80]}`: {error}")) from None
    return out


def policy_of(argument: str | None) -> dict[str, Json]:
    """A policy in the form of fleet files, as JSON or `@FILE`; empty when there is none. Raises BadInput, EngineRefused, Unreachable."""
    from fleetctl.capacity.policy.problems import refuse_errors
    from fleetctl.capacity.policy.shape import of_misfits
    from fleetctl.model.policy_forms import from_json

    if argument is None:
        return {}
    data = read_bytes(argument[1:], _MAX_POLICY) if argument.startswith("@") else argument.encode()
    try:
        found = json.loads(
            data, parse_float=lambda text: {"$decimal": text}, parse_constant=_no_constant, object_pairs_hook=_unique
        )
    except (ValueError, RecursionError) as error:
        raise BadInput(BAD_POLICY_ARGUMENT.at(f'--policy: {error}; write it as in `{{"maxPending": "6h"}}`')) from None
    if not isinstance(found, Mapping):
        raise BadInput(BAD_POLICY_ARGUMENT.at('--policy must be a JSON object, such as {"maxPending": "6h"}'))
    policy, misfits = from_json(found)
    if misfits:
        refuse_errors(of_misfits(misfits))
    return policy


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a key comes twice")
    return out


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")
