(setq copilot-server-executable "hone"
      copilot-server-args '("lsp")
      copilot-lsp-server-version nil)
