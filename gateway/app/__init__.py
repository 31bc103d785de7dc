"""The composition root: settings and policies become a wired gateway (`serve`), a batch run (`scrub`), or the demo."""
