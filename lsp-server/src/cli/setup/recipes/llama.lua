vim.g.llama_config = { endpoint_fim = 'http://127.0.0.1:4663/infill', api_key = 'TOKEN' }
