(class_declaration) @class
(record_declaration) @class
(struct_declaration) @struct
(interface_declaration) @interface
(enum_declaration) @enum
(delegate_declaration) @type
(method_declaration) @method
(constructor_declaration) @method
(local_function_statement) @function
(property_declaration) @property
(namespace_declaration) @namespace
(field_declaration (modifier "const")) @constant
(field_declaration (modifier "static") (modifier "readonly")) @constant

(invocation_expression function: [
  (identifier) @use
  (generic_name (identifier) @use)
  (member_access_expression name: [(identifier) @use (generic_name (identifier) @use)])])
(member_access_expression expression: (identifier) @class-use)
(object_creation_expression type: [(identifier) @use (qualified_name name: (identifier) @use)])
(base_list [(identifier) @use (qualified_name name: (identifier) @use)])
(generic_name (identifier) @use)
(type_argument_list (identifier) @use)
(variable_declaration type: (identifier) @use)
(parameter type: (identifier) @use)
(method_declaration returns: (identifier) @use)
(property_declaration type: (identifier) @use)
(cast_expression type: (identifier) @use)
(typeof_expression type: (identifier) @use)
(attribute name: (identifier) @use)
