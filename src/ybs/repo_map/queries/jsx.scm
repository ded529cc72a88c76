(jsx_opening_element name: (identifier) @class-use)
(jsx_self_closing_element name: (identifier) @class-use)
