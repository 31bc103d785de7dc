"""The review page's view of a gateway: what is shown of held studies, and how a person's wishes are written down."""
