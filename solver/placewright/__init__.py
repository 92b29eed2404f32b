"""placewright decides which GPUs each part of an RL post-training job gets, and proves it."""
