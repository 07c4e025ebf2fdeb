"""The papers, one package each, and `shared`, which they build on."""
