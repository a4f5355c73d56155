"""Characters that no text may hold: what is reviewed must be what is read, and it must not steer a terminal."""

from __future__ import annotations

import re
from typing import Final

# Escaped throughout: the file that refuses invisible characters holds none.
CONTROLS: Final = r"\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufdd0-\ufdef\ufffe\uffff"
SEPARATORS: Final = r"\x85\u2028\u2029"
SHAPELESS: Final = (
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0d\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
FORBIDDEN: Final = re.compile(rf"[\x00\ufeff{CONTROLS}{SEPARATORS}{SHAPELESS}]|\r(?!\n)")
"""Characters that no fleet file holds, and a carriage return that ends no line."""
MAX_TEXT: Final = 65_536
"""Characters of a description."""
MAX_LABEL: Final = 1_024
WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9@._:/-]{0,126}", re.ASCII)
"""A region."""
IDENTIFIER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}", re.ASCII)
"""An account of a provider, or an instance SKU."""
RESOURCE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,126}", re.ASCII)
"""A resource of a quota, or a label's name."""
