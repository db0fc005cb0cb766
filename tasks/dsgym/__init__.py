"""DSGym: questions about data and prediction contests, solved by an agent that runs code."""
