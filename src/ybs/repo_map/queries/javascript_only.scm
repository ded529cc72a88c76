(class_heritage [(identifier) @use (member_expression property: (property_identifier) @use)])
(field_definition value: [(arrow_function) (function_expression)]) @method
