(source_file (const_declaration (const_spec) @constant))
(source_file (var_declaration (var_spec) @constant))
(source_file (var_declaration (var_spec_list (var_spec) @constant)))
(type_spec) @type
(type_alias) @type
(type_spec type: (struct_type)) @struct
(type_spec type: (interface_type)) @interface
(function_declaration) @function
(method_declaration) @method
(method_elem) @method

(call_expression function: [(identifier) @use (selector_expression field: (field_identifier) @use)])
(type_identifier) @use
