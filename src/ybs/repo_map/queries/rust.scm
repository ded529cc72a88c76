(struct_item) @struct
(union_item) @struct
(enum_item) @enum
(trait_item) @trait
(impl_item) @impl
(function_item) @function
(function_signature_item) @function
(macro_definition) @macro
(const_item) @constant
(static_item) @constant
(type_item) @type
(mod_item) @module

(call_expression function: [
  (identifier) @use
  (scoped_identifier name: (identifier) @use)
  (field_expression field: (field_identifier) @use)
  (generic_function function: [(identifier) @use (scoped_identifier name: (identifier) @use)])])
(scoped_identifier path: (identifier) @class-use)
(type_identifier) @use
(macro_invocation macro: [(identifier) @use (scoped_identifier name: (identifier) @use)])
(use_declaration argument: [(identifier) @use (scoped_identifier name: (identifier) @use)])
(use_list [(identifier) @use (scoped_identifier name: (identifier) @use)])
(use_as_clause path: (scoped_identifier name: (identifier) @use))
(attribute arguments: (token_tree (identifier) @class-use))
(token_tree (identifier) @use . (token_tree))
