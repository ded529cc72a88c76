(function_definition) @function
(program (variable_assignment name: (variable_name)) @constant)
(program (declaration_command (variable_assignment name: (variable_name)) @constant))

(command_name (word) @use)
