"""Values in known credential formats: a repository is no place for them, and a plan would carry them on."""

from __future__ import annotations

import re
from itertools import islice
from string import ascii_letters, digits
from typing import Final

from fleetctl.config.problems import Problems
from fleetctl.diagnostics import code

SECRET = code(
    "secret-in-file",
    "A file holds what looks like a credential",
    trigger="a private key, a token of a known vendor format, a JSON web token, a password in a URL",
)

_Format = tuple[tuple[str, ...], str, re.Pattern[str]]
"""Literal texts of which one must be there (looking for them first costs next to nothing), a name, the format."""

_OF_ANY_LENGTH: Final[tuple[_Format, ...]] = tuple(
    (literals, name, re.compile(pattern, re.ASCII))
    for literals, name, pattern in (
        (("PRIVATE KEY",), "a private key", r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"),
        (("://",), "a password in a URL", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"']{0,100}:[^\s/@\"']{1,200}@"),
        (("hooks.slack.com/",), "a Slack webhook", r"hooks\.slack\.com/(?:services|workflows)/[\w/]{20,}"),
    )
)
_LONG_WORDS: Final[tuple[_Format, ...]] = tuple(
    (literals, name, re.compile(pattern, re.ASCII))
    for literals, name, pattern in (
        (("AGE-SECRET-KEY-",), "an age key", r"AGE-SECRET-KEY-1[A-Z0-9]{20,}"),
        (("eyJ",), "a JSON web token", r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*"),
        (("AKIA", "ASIA"), "an AWS access key", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
        (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), "a GitHub token", r"\bgh[pousr]_[A-Za-z0-9]{36,}"),
        (("github_pat_",), "a GitHub token", r"\bgithub_pat_\w{22,}"),
        (("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glagent-"), "a GitLab token", r"\bgl[a-z]{2,5}-[\w-]{20,}"),
        (("xox", "xapp-"), "a Slack token", r"\b(?:xox[a-z]|xapp)-[A-Za-z0-9-]{16,}"),
        (("sk-",), "an API key", r"(?<![\w-])sk-(?=[\w-]{0,200}[A-Z])(?=[\w-]{0,200}[0-9])[\w-]{20,}"),
        (("sk_live_", "rk_live_", "sk_test_", "rk_test_"), "a Stripe key", r"\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
        (("AIza",), "a Google API key", r"\bAIza[\w-]{35}"),
        (("GOCSPX-",), "a Google client secret", r"\bGOCSPX-[\w-]{20,}"),
        (("hf_",), "a Hugging Face token", r"\bhf_[A-Za-z0-9]{30,}"),
        (("nvapi-",), "an NVIDIA API key", r"\bnvapi-[\w-]{40,}"),
        (("npm_",), "an npm token", r"\bnpm_[A-Za-z0-9]{36}"),
        (("pypi-AgE",), "a PyPI token", r"\bpypi-AgE[\w-]{40,}"),
        (("dckr_pat_",), "a Docker token", r"\bdckr_pat_[\w-]{20,}"),
        (("hvs.", "hvb."), "a Vault token", r"\bhv[sb]\.[\w-]{20,}"),
        (("dop_v1_",), "a DigitalOcean token", r"\bdop_v1_[a-f0-9]{40,}"),
        (("SG.",), "a SendGrid key", r"\bSG\.[\w-]{16,}\.[\w-]{16,}"),
        (("tskey-",), "a Tailscale key", r"\btskey-[a-z]+-[\w-]{16,}"),
    )
)
_MAX_SHOWN = 20
_WORD = bytes(0x77 if chr(byte) in ascii_letters + digits + "-_." else 0x20 for byte in range(256))
_LONG_WORD = b"w" * 20
"""No format of `_LONG_WORDS` is shorter. Most files have no such word at all, and one pass over the bytes tells."""


def report_secrets(text: str, content: bytes, base: int, problems: Problems) -> None:
    """Report credentials in a file's text (`content` is its UTF-8), comments included, without repeating them.

    `base` is the place of the text's start.
    """
    _report(_OF_ANY_LENGTH, text, base, problems)
    if _LONG_WORD in content.translate(_WORD):
        _report(_LONG_WORDS, text, base, problems)


def _report(formats: tuple[_Format, ...], text: str, base: int, problems: Problems) -> None:
    for literals, name, pattern in formats:
        if not any(literal in text for literal in literals):
            continue
        for match in islice(pattern.finditer(text), _MAX_SHOWN):
            detail = (
                f"this looks like {name}; withdraw it, keep it in a secret store, and write a reference scheme:path"
            )
            problems.add(SECRET, detail, base + match.start())
