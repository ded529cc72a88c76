"""Route requests to one of several models: arms, kinds of task, a learner, a breaker, and the choice."""
