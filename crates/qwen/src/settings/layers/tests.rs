//! Which source wins, and what a project cannot do.
