//! The regression suite: lines that the base model completes in exactly one way. An adapter that
//! does not complete them so has forgotten how to write code. A line that could continue in another
//! way would count what was learned against the adapter. tests/tests/e2e/holdout_check.rs tests
//! that a model completes these lines.

/// Each case holds the lines above, the line so far, the rest of it, and the lines below.
pub const SUITE: &[[&str; 4]] = &[
    [
        "class Point:\n    def __init__(self, x, y):\n        self.x = x\n",
        "        self.y",
        " = y",
        "\n",
    ],
    [
        concat!(
            "def average(numbers):\n",
            "    total = 0\n",
            "    for number in numbers:\n",
            "        total += number\n",
        ),
        "    return total",
        " / len(numbers)",
        "\n",
    ],
    [
        "def read_lines(path):\n",
        "    with open(path)",
        " as file:",
        "\n        return file.readlines()\n",
    ],
    [
        "def fibonacci(n):\n    if n < 2:\n        return n\n",
        "    return fibonacci(n - 1)",
        " + fibonacci(n - 2)",
        "\n",
    ],
    [
        concat!(
            "struct Rectangle {\n",
            "    width: u32,\n",
            "    height: u32,\n",
            "}\n\n",
            "impl Rectangle {\n",
            "    fn area(&self) -> u32 {\n",
        ),
        "        self.width",
        " * self.height",
        "\n    }\n}\n",
    ],
    [
        "struct Counter {\n    count: u32,\n}\n\nimpl Counter {\n    fn new() -> Self {\n",
        "        Counter {",
        " count: 0 }",
        "\n    }\n}\n",
    ],
    [
        concat!(
            "use std::fs::File;\n",
            "use std::io::Read;\n\n",
            "fn read(path: &str) -> std::io::Result<String> {\n",
            "    let mut file = File::open(path)?;\n",
            "    let mut contents = String::new();\n",
        ),
        "    file.read_to_string",
        "(&mut contents)?;",
        "\n    Ok(contents)\n}\n",
    ],
    [
        concat!(
            "enum Shape {\n",
            "    Circle(f64),\n",
            "    Square(f64),\n",
            "}\n\n",
            "fn area(shape: &Shape) -> f64 {\n",
            "    match shape {\n",
            "        Shape::Circle(radius) => 3.14 * radius * radius,\n",
        ),
        "        Shape::Square(side)",
        " => side * side,",
        "\n    }\n}\n",
    ],
    [
        "function sum(values) {\n  let total = 0;\n  for (const value of values) {\n",
        "    total",
        " += value;",
        "\n  }\n  return total;\n}\n",
    ],
    [
        "const items = [1, 2, 3];\n",
        "for (let i = 0; i < items.length;",
        " i++) {",
        "\n  console.log(items[i]);\n}\n",
    ],
    ["class Animal {\n  constructor(name) {\n", "    this.name", " = name;", "\n  }\n}\n"],
    ["try {\n  run();\n", "} catch", " (error) {", "\n  console.error(error);\n}\n"],
    [
        concat!(
            "package main\n\n",
            "import (\n",
            "\t\"fmt\"\n",
            "\t\"os\"\n",
            ")\n\n",
            "func main() {\n",
            "\tfile, err := os.Open(\"input.txt\")\n",
        ),
        "\tif err",
        " != nil {",
        "\n\t\tfmt.Println(err)\n\t\treturn\n\t}\n\tdefer file.Close()\n}\n",
    ],
    [
        "package sum\n\nfunc Sum(numbers []int) int {\n\ttotal := 0\n",
        "\tfor _, number",
        " := range numbers {",
        "\n\t\ttotal += number\n\t}\n\treturn total\n}\n",
    ],
    [
        "int max(int a, int b) {\n    if (a > b) {\n        return a;\n    }\n",
        "    return",
        " b;",
        "\n}\n",
    ],
    [
        concat!(
            "#include <stdlib.h>\n\n",
            "struct node {\n",
            "    int value;\n",
            "    struct node *next;\n",
            "};\n\n",
            "struct node *create(int value) {\n",
            "    struct node *node = malloc(sizeof(struct node));\n",
            "    node->value = value;\n",
        ),
        "    node->next",
        " = NULL;",
        "\n    return node;\n}\n",
    ],
];
