"""Skills: folders with a SKILL.md, whose description a model knows, and whose words it reads when it needs them."""
