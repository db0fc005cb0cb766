"""The words of the project: records, registry, keys, errors. Imports nothing else of the project."""
