(abstract_class_declaration) @class
(interface_declaration) @interface
(type_alias_declaration) @type
(enum_declaration) @enum
(internal_module) @namespace
(module) @namespace
(function_signature) @function
(method_signature) @method
(abstract_method_signature) @method
(public_field_definition value: [(arrow_function) (function_expression)]) @method

(type_identifier) @use
(extends_clause value: [(identifier) @use (member_expression property: (property_identifier) @use)])
