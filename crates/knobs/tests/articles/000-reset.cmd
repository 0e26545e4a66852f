netsh interface tcp reset
