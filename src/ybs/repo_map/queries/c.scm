(function_definition) @function
(struct_specifier body: (_)) @struct
(union_specifier body: (_)) @struct
(enum_specifier body: (_)) @enum
(type_definition) @type
(preproc_function_def) @macro
(preproc_def value: (_)) @constant
(translation_unit (declaration declarator: (init_declarator)) @constant)
(declaration declarator: (function_declarator)) @declaration
(declaration declarator: (pointer_declarator declarator: (function_declarator))) @declaration

(call_expression function: [(identifier) @use (field_expression field: (field_identifier) @use)])
(type_identifier) @use
(argument_list (identifier) @class-use)
