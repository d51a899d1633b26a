"""Topics as tables: `Client.read_table`, `Client.send_rows`, and what notebooks show. Loaded when
they are asked for, and with them pyarrow."""
