"""What Streamlit runs at every interaction of a visitor: the site.

Start it with ``harness board``, or ``python -P -m streamlit run`` and this file.
"""

from leaderboard.app import main

main()
