"""Which of several models gets a request: arms, kinds of task, a learner, a breaker, and the choice."""
