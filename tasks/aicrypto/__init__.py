"""AICrypto: cryptography as choice questions, challenges and proofs."""
