(class) @class
(module) @module
(method) @method
(singleton_method) @method
(assignment left: (constant)) @constant

(call method: (identifier) @use)
(constant) @use
(argument_list (simple_symbol) @use)
