(class_declaration) @class
(interface_declaration) @interface
(trait_declaration) @trait
(enum_declaration) @enum
(function_definition) @function
(method_declaration) @method
(const_element) @constant
(namespace_definition name: (_)) @namespace

(function_call_expression function: [(name) @use (qualified_name (name) @use)])
(member_call_expression name: (name) @use)
(nullsafe_member_call_expression name: (name) @use)
(scoped_call_expression scope: [(name) @use (qualified_name (name) @use)])
(scoped_call_expression name: (name) @use)
(class_constant_access_expression . [(name) @use (qualified_name (name) @use)])
(object_creation_expression [(name) @use (qualified_name (name) @use)])
(base_clause [(name) @use (qualified_name (name) @use)])
(class_interface_clause [(name) @use (qualified_name (name) @use)])
(named_type [(name) @use (qualified_name (name) @use)])
(namespace_use_clause [(name) @use (qualified_name (name) @use)])
(use_declaration [(name) @use (qualified_name (name) @use)])
(attribute [(name) @use (qualified_name (name) @use)])
