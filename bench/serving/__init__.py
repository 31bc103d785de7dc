"""What `bench.pipeline` and `bench.soak` share: a real `serve`, policies by stage set, and studies to send to it."""
