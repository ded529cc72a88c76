; Definitions: the node is captured under its kind; tags.py finds the name in it.
(class_definition) @class
(function_definition) @function
(module (expression_statement (assignment left: (identifier)) @constant))
(type_alias_statement) @type

; Uses: calls, bases, decorators, imports, types, exceptions.
(call function: [(identifier) @use (attribute attribute: (identifier) @use)])
(class_definition superclasses: (argument_list [(identifier) @use (attribute attribute: (identifier) @use)]))
(decorator [(identifier) @use (attribute attribute: (identifier) @use)])
(import_from_statement name: (dotted_name (identifier) @use .))
(aliased_import name: (dotted_name (identifier) @use .))
(import_statement name: (dotted_name (identifier) @use .))
(type [(identifier) @use (attribute attribute: (identifier) @use) (generic_type (identifier) @use)])
(except_clause [(identifier) @use (tuple (identifier) @use) (as_pattern (identifier) @use)])
(call function: (attribute object: (identifier) @class-use))
(argument_list (identifier) @class-use)
