--- The version of this plugin. `cargo xtask test` holds it to that of the programs.
return '0.1.0'
