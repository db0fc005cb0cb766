-- Version 5. The level of isolation in which a scorer ran an answer, where it ran one.

ALTER TABLE scores ADD COLUMN isolation VARCHAR;
