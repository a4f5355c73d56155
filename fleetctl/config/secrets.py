"""Values in known credential formats: a repository is no place for them, and a plan would carry them on."""

from __future__ import annotations

import re
from typing import Final

from fleetctl.config.problems import Problems
from fleetctl.diagnostics import code

SECRET = code(
    "secret-in-file",
    "A file holds what looks like a credential",
    trigger="a private key, a token of a known vendor format, a JSON web token, a password in a URL",
)

# Each with literal text that must be there for it to match: looking for that first costs next to nothing.
_FORMATS: Final[tuple[tuple[tuple[str, ...], str, re.Pattern[str]], ...]] = tuple(
    (literals, name, re.compile(pattern, re.ASCII))
    for literals, name, pattern in (
        (("PRIVATE KEY",), "a private key", r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"),
        (("AGE-SECRET-KEY-",), "an age key", r"AGE-SECRET-KEY-1[A-Z0-9]{20,}"),
        (("eyJ",), "a JSON web token", r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*"),
        (("AKIA", "ASIA"), "an AWS access key", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
        (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), "a GitHub token", r"\bgh[pousr]_[A-Za-z0-9]{36,}"),
        (("github_pat_",), "a GitHub token", r"\bgithub_pat_\w{22,}"),
        (("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glagent-"), "a GitLab token", r"\bgl[a-z]{2,5}-[\w-]{20,}"),
        (("xox", "xapp-"), "a Slack token", r"\b(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}"),
        (("hooks.slack.com/",), "a Slack webhook", r"hooks\.slack\.com/(?:services|workflows)/[\w/]{20,}"),
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
        (("://",), "a password in a URL", r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"']{0,100}:[^\s/@\"']{1,200}@"),
    )
)
_MAX_SHOWN = 20


def report_secrets(text: str, base: int, problems: Problems) -> None:
    """Report credentials in a file's text, comments included, without repeating them. `base` is the place of its start."""
    for literals, name, pattern in _FORMATS:
        if not any(literal in text for literal in literals):
            continue
        for count, match in enumerate(pattern.finditer(text)):
            if count == _MAX_SHOWN:
                break
            detail = (
                f"this looks like {name}; withdraw it, keep it in a secret store, and write a reference scheme:path"
            )
            problems.add(SECRET, detail, base + match.start())
