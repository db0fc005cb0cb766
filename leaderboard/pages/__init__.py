"""The pages, one module each with one function `page`; `leaderboard.app` lists them."""
