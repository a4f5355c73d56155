"""The other side of the comparisons: Terraform, octoDNS, raw Ed25519."""
