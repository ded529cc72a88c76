; The last capture of a node decides its kind.
(program (lexical_declaration (variable_declarator name: (identifier)) @constant))
(program (variable_declaration (variable_declarator name: (identifier)) @constant))
(program (export_statement (lexical_declaration (variable_declarator name: (identifier)) @constant)))

(class_declaration) @class
(class name: (_)) @class
(variable_declarator name: (identifier) value: (class)) @class
(function_declaration) @function
(generator_function_declaration) @function
(method_definition) @method
(variable_declarator name: (identifier) value: [(arrow_function) (function_expression) (generator_function)]) @function
(assignment_expression
  left: [(identifier) (member_expression property: (property_identifier))]
  right: [(arrow_function) (function_expression) (generator_function)]) @function
(pair key: (property_identifier) value: [(arrow_function) (function_expression) (generator_function)]) @function

(call_expression function: [(identifier) @use (member_expression property: (property_identifier) @use)])
(call_expression function: (member_expression object: (identifier) @class-use))
(new_expression constructor: [(identifier) @use (member_expression property: (property_identifier) @use)])
(import_specifier name: (identifier) @use)
(import_clause (identifier) @use)
(export_specifier name: (identifier) @use)
(decorator (identifier) @use)
(variable_declarator
  name: (object_pattern (shorthand_property_identifier_pattern) @use)
  value: (call_expression function: (identifier)))
(arguments (identifier) @class-use)
