"""How things look: text tables, figures, pages. Nothing else in the house knows."""
