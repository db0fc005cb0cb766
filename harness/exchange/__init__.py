"""Results in and out: submissions of whole runs, and the exports of what a store holds."""
