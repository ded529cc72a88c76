(class_declaration) @class
(record_declaration) @class
(interface_declaration) @interface
(annotation_type_declaration) @interface
(enum_declaration) @enum
(method_declaration) @method
(constructor_declaration) @method
(compact_constructor_declaration) @method
(field_declaration (modifiers "static" "final")) @constant
(constant_declaration) @constant

(method_invocation name: (identifier) @use)
(method_invocation object: (identifier) @class-use)
(field_access object: (identifier) @class-use)
(method_reference (identifier) @use)
(type_identifier) @use
(import_declaration (scoped_identifier name: (identifier) @use))
(marker_annotation name: (identifier) @use)
(annotation name: (identifier) @use)
