// Stands in for the HTTP library that llama.cpp's `common` library downloads models with.
