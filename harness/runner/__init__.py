"""plan -> solve -> score -> journal -> ingest, resumable after anything."""
