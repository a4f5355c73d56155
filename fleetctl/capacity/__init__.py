"""The rules of pools (Better Compute pools): what a policy may say, what a change may do, what a host can give."""
