"""GSM8K: grade-school word problems."""
