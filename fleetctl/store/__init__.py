"""Databases of an engine and of a witness: statements, rows, SQLite, migrations. The only package that knows SQL."""
