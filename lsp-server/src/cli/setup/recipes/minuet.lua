require("minuet").setup({
  provider = "openai_fim_compatible", n_completions = 1, context_window = 8000,
  provider_options = { openai_fim_compatible = {
    name = "Hone", model = "hone", api_key = function() return "TOKEN" end, stream = true,
    end_point = "http://127.0.0.1:4663/v1/completions",
  } },
})
