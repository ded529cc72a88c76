(class_specifier body: (_)) @class
(namespace_definition name: (_)) @namespace
(alias_declaration) @type
(concept_definition) @type
(field_declaration declarator: (function_declarator)) @declaration
(field_declaration declarator: (_ (function_declarator))) @declaration

(call_expression function: [
  (qualified_identifier name: (identifier) @use)
  (qualified_identifier name: (template_function name: (identifier) @use))
  (template_function name: (identifier) @use)
  (field_expression field: (template_method name: (field_identifier) @use))])
(qualified_identifier scope: (namespace_identifier) @use)
